await Promise.reject(new TypeError("awaited"));
