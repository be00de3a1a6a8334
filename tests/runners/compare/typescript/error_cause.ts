try {
    JSON.parse("{bad");
} catch (e) {
    throw new Error("while reading", { cause: e });
}
