process.kill(process.pid, "SIGTERM");
await Bun.sleep(5000);
