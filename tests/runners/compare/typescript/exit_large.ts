process.exit(300);
