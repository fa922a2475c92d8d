// The environment's app in a sandboxed frame, and the host's end of the MCP Apps protocol: JSON-RPC over postMessage.
// The app may call the tools of its episode, choose a move, and ask for the values of moves. It can reach nothing else.

import { h } from "./dom.js";

const VERSION = "2026-01-26";
const NO_SUCH_METHOD = -32601;
const REFUSED = -32000;
const HIGHEST = 900;

export class AppHost {
  ready = false;
  shown = null;
  context = {};

  // call(name, arguments), choose(act) and values() do what the app asks for.
  constructor(address, title, { call, choose, values }) {
    this.does = { call, choose, values };
    this.element = h("iframe", { class: "app", title, src: address, sandbox: "allow-scripts" });
    addEventListener("message", (event) => {
      if (event.source === this.element.contentWindow && event.data?.jsonrpc === "2.0") this.hear(event.data);
    });
  }

  send(message) {
    this.element.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, "*"); // its origin is opaque: no other fits
  }

  // Show the game: what its texts say, and what this page knows besides (whose part it is, choices, values of moves).
  show(text, done, mcpgym) {
    this.context = { theme: theme(), mcpgym };
    this.shown = { content: [{ type: "text", text }], _meta: done ? { "mcpgym/done": true } : {} };
    if (this.ready) this.update();
  }

  update() {
    this.send({ method: "ui/notifications/host-context-changed", params: this.context });
    if (this.shown) this.send({ method: "ui/notifications/tool-result", params: this.shown });
  }

  async hear(message) {
    if (message.method === "ui/notifications/initialized") {
      this.ready = true;
      this.update();
    } else if (message.method === "ui/notifications/size-changed") {
      const height = Number(message.params?.height);
      if (height > 0) this.element.style.height = `${Math.min(Math.ceil(height) + 2, HIGHEST)}px`;
    } else if (message.id !== undefined && message.method !== undefined) {
      try {
        this.send({ id: message.id, result: await this.answer(message.method, message.params || {}) });
      } catch (problem) {
        this.send({ id: message.id, error: { code: problem.code || REFUSED, message: String(problem.message) } });
      }
    }
  }

  async answer(method, params) {
    if (method === "ui/initialize") {
      return {
        protocolVersion: VERSION,
        hostInfo: { name: "mcpgym play", version: "1" },
        hostCapabilities: { serverTools: {} },
        hostContext: { ...this.context, theme: theme(), displayMode: "inline", platform: "web" },
      };
    }
    if (method === "ping") return {};
    if (method === "tools/call") return this.does.call(String(params.name), params.arguments || {});
    if (method === "mcpgym/choose") return this.does.choose(String(params.act));
    if (method === "mcpgym/values") return (await this.does.values()) ?? {};
    throw Object.assign(new Error(`this host does not know ${method}`), { code: NO_SUCH_METHOD });
  }
}

function theme() {
  const chosen = document.documentElement.dataset.theme;
  return chosen || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}
