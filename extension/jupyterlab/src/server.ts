/** Requests to dtdebug's own part of the Jupyter server, which looks at kernels from outside. */

import { ServerConnection } from "@jupyterlab/services";

export type Json = Readonly<Record<string, unknown>>;

/** off: the server has no such part; lost: it can't be reached, or took too long; told: it says why not. */
export interface Refusal {
  readonly refused: "off" | "lost" | "told";
  readonly why: string;
}

/** Never rejects. */
export async function get(settings: ServerConnection.ISettings, path: string, limit = 15_000): Promise<Json | Refusal> {
  return send(settings, path, { signal: AbortSignal.timeout(limit) });
}

/** Never rejects. Token and XSRF are the work of JupyterLab's own function. */
export async function post(
  settings: ServerConnection.ISettings,
  path: string,
  body: object,
  limit: number,
): Promise<Json | Refusal> {
  return send(settings, path, { method: "POST", body: JSON.stringify(body), signal: AbortSignal.timeout(limit) });
}

async function send(settings: ServerConnection.ISettings, path: string, init: RequestInit): Promise<Json | Refusal> {
  try {
    const response = await ServerConnection.makeRequest(`${settings.baseUrl}dtdebug/api/${path}`, init, settings);
    const content = await json(response);
    if (response.ok && content) {
      return content;
    }
    return content ? { refused: "told", why: told(content, response) } : { refused: "off", why: "" };
  } catch {
    return { refused: "lost", why: "" };
  }
}

export function isRefusal(answer: Json | Refusal): answer is Refusal {
  return "refused" in answer;
}

/** Our part answers in JSON, also where it refuses; a server without it shows a page. */
async function json(response: Response): Promise<Json | null> {
  if (!response.headers.get("content-type")?.startsWith("application/json")) {
    return null;
  }
  const content: unknown = await response.json();
  return content && typeof content === "object" && !Array.isArray(content) ? (content as Json) : null;
}

function told(content: Json, response: Response): string {
  return typeof content["message"] === "string" && content["message"] ? content["message"] : response.statusText;
}
