// The talk with autoconsent: it looks once, and opts out when told to.
async ({ rules, milliseconds }) => {
  const key = Symbol.for("maniple.consent");
  if (window[key]) return false;
  window[key] = true;
  // Autoconsent takes its time over each rule; most can be told at a glance not to be of this page.
  const isThere = (selector) => {
    try {
      return typeof selector !== "string" || selector.startsWith("xpath/") || !!document.querySelector(selector);
    } catch {
      return true;
    }
  };
  const mayApply = (rule) => rule.detectCmp.every((step) => step.negated || isThere(step.exists));
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
    AUTOCONSENT;
    window.autoconsentReceiveMessage({
      type: "initResp",
      config: {
        autoAction: null,
        enablePrehide: false,
        detectRetries: 0,
        isMainWorld: true,
        heuristicMode: "off",
        logs: { errors: false },
      },
      rules: { autoconsent: JSON.parse(rules).filter(mayApply) },
    });
  });
};
