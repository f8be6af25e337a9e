import { texts } from "../../texts";

export const TABS = ["now", "browser", "files", "sources", "report"] as const;
export type Tab = (typeof TABS)[number];

interface Shown {
  selected: Tab;
  onSelect: (tab: Tab) => void;
}

/** The tabs of the panel. Arrow keys select; Tab leads to what is selected. */
export function Tabs({ selected, onSelect }: Shown) {
  const move = (event: KeyboardEvent) => {
    const at = TABS.indexOf(selected);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: TABS.length - 1 }[event.key];
    if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const tab = TABS[(to + TABS.length) % TABS.length]!;
    onSelect(tab);
    document.getElementById(idOf(tab))?.focus();
  };
  return (
    <div class="panel-tabs" role="tablist" aria-label={texts.panel} onKeyDown={move}>
      {TABS.map((tab) => (
        <button
          key={tab}
          id={idOf(tab)}
          role="tab"
          aria-selected={tab === selected}
          aria-controls={tab === selected ? bodyOf(tab) : undefined}
          tabIndex={tab === selected ? 0 : -1}
          onClick={() => onSelect(tab)}
        >
          {texts.panelTabs[tab]}
        </button>
      ))}
    </div>
  );
}

const idOf = (tab: Tab) => `panel-tab-${tab}`;
const bodyOf = (tab: Tab) => `panel-${tab}`;

/** The attributes of the element that shows what is behind a tab. */
export function tabPanel(tab: Tab) {
  return { id: bodyOf(tab), role: "tabpanel", "aria-labelledby": idOf(tab) } as const;
}
