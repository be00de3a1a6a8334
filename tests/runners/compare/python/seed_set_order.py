words = {f"word {n}" for n in range(50)}
print(len(words), list({n: 1 for n in range(5)}), sorted(words)[:2], {3, 1, 2})
