process.kill(process.pid, "SIGINT");
await Bun.sleep(5000);
