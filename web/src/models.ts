import { computed, signal } from "@preact/signals";
import { read, send } from "./api";
import { readRemembered, remember } from "./storage";

const STORAGE_KEY = "maniple.model";

/** The models of the service, as in `GET /api/models`. */
export interface Models {
  answering: string;
  /** Whether the small model of the installation answers. */
  embedded: boolean;
  models: { name: string; has_price: boolean }[];
  /** Why another model cannot be connected from here; "" if it can. */
  fixed: string;
  /** The folder without settings that the service trusts when a model is saved; "" for none. */
  trusts: string;
}

/** What a person enters to connect a model. Without a key that of the same address is kept. */
export interface Connection {
  model: string;
  base_url: string;
  api_key?: string;
}

/** The result of a test, as in `POST /api/models/test`. */
export interface Tested {
  works: boolean;
  detail: string;
  models: string[];
  /** Null where the calls did not show it. */
  features: Record<string, boolean | null>;
}

export interface Saved {
  model: string;
  file: string;
  overruled: string[];
  notices: string[];
}

/** Null until they are known. */
export const models = signal<Models | null>(null);
/** Whether the cost of a run can be limited: every model has a price. */
export const hasPrices = computed(() => Boolean(models.value?.models.length) && models.value!.models.every((one) => one.has_price));
/** Whether the form for another model is open. */
export const isConnecting = signal(false);

const chosen = signal(readRemembered(STORAGE_KEY));
/** The model of the next runs that the person chose; "" leaves it to the service, as does one that is gone. */
export const chosenModel = computed(() => (models.value?.models.some(({ name }) => name === chosen.value) ? chosen.value : ""));

export function chooseModel(name: string): void {
  chosen.value = name;
  remember(STORAGE_KEY, name);
}

export async function refreshModels(): Promise<void> {
  models.value = await read<Models>("/api/models");
}

export function testModel(asked: Connection): Promise<Tested> {
  return send("POST", "/api/models/test", asked);
}

export async function connectModel(asked: Connection): Promise<Saved> {
  const saved = await send<Saved>("PUT", "/api/models/basic", asked);
  await refreshModels().catch(() => undefined);
  return saved;
}
