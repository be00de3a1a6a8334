for (let n = 0; n < 20000; n++) console.log(n, "x".repeat(100));
