// The talk with autoconsent's script, which is put where BUNDLE stands: it looks once, and opts out when told to.
async ({ rules, milliseconds }) => {
  const key = Symbol.for("maniple.consent");
  if (window[key]) return false;
  window[key] = true;
  return await new Promise((resolve) => {
    let open = true;
    const finish = (result) => {
      open = false;
      resolve(result);
    };
    setTimeout(() => finish(false), milliseconds);
    window.autoconsentSendMessage = async (message) => {
      // Too late: the page is in use again, and nothing may be clicked behind anybody's back.
      if (!open) return;
      if (message.type === "popupFound") setTimeout(() => window.autoconsentReceiveMessage({ type: "optOut" }));
      if (message.type === "optOutResult") finish(message.result === true);
      if (message.type === "report" && message.state.lifecycle === "nothingDetected") finish(false);
    };
    BUNDLE;
    window.autoconsentReceiveMessage({
      type: "initResp",
      config: {
        autoAction: null, enablePrehide: false, detectRetries: 0, isMainWorld: true, heuristicMode: "off",
        logs: { errors: false },
      },
      rules: { autoconsent: rules },
    });
  });
}
