/* Browsers start no worker for pages that are files: there the script of the search runs in a hidden frame instead. */
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(address) {
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.addEventListener("load", () => this.begin(new URL(address, document.baseURI)), { once: true });
      document.body.append(this.frame);
    }

    begin(address) {
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.onmessage && this.onmessage({ data }));
      const script = inside.document.createElement("script");
      script.src = address;
      script.addEventListener("load", () => {
        this.send = (data) => inside.onmessage({ data: structuredClone(data) });
        this.waiting.splice(0).forEach(this.send);
      });
      script.addEventListener("error", () => this.onerror && this.onerror(new Event("error", { cancelable: true })));
      inside.document.head.append(script);
    }

    postMessage(data) {
      setTimeout(() => (this.send ? this.send(data) : this.waiting.push(data)));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
