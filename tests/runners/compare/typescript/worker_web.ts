// file: worker.ts
//| self.onmessage = (e: MessageEvent) => postMessage(e.data * 2);
const worker = new Worker("/data/worker.ts");
worker.onmessage = (e) => {
    console.log(e.data);
    worker.terminate();
};
worker.postMessage(21);
