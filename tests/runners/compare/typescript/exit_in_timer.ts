setTimeout(() => process.exit(3), 20);
setInterval(() => {}, 1000);
