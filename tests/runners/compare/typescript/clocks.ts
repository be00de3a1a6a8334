console.log(performance.now() < 30000, Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 2000, process.hrtime().length, process.uptime() < 60);
console.log(Bun.nanoseconds() < 60e9, process.cpuUsage().user < 5e6, Math.abs(Date.now() - require("fs").statSync(Bun.main).mtimeMs) < 20000);
