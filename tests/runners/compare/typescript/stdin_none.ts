console.log(JSON.stringify(await Bun.stdin.text()), prompt("x"), Bun.stdin.size);
