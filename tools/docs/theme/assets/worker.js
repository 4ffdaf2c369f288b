// Browsers start no workers for pages of the file system. There, the search of the theme runs in a
// hidden frame, which looks like a worker to both sides.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      this.scope.importScripts = async (...urls) => {
        for (const script of urls) await this.load(script);
      };
      this.ready = this.load(new URL(url, location.href).href);
    }
    load(url) {
      return new Promise((loaded, failed) => {
        const element = this.scope.document.createElement("script");
        element.src = url;
        element.onload = loaded;
        element.onerror = failed;
        this.scope.document.body.append(element);
      });
    }
    postMessage(data) {
      this.ready.then(() =>
        this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data })));
    }
    terminate() {
      this.scope.frameElement.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
