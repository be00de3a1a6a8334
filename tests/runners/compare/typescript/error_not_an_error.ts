throw { a: 1 };
