console.log(Bun.main, require.main === module, require.main?.filename, __dirname, __filename, module.id, module.paths?.length);
