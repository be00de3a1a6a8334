import { Worker as NodeWorker, isMainThread, parentPort, workerData } from "node:worker_threads";
if (isMainThread) {
    const worker = new NodeWorker(import.meta.filename, { workerData: { n: 5 } });
    worker.on("message", (m) => console.log("from the worker", m));
    worker.on("exit", (code) => console.log("worker ended", code));
} else {
    parentPort!.postMessage({ got: workerData, main: isMainThread });
}
