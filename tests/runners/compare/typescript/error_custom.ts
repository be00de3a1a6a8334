class MyError extends Error {
    code = 5;
    constructor(message: string) {
        super(message);
        this.name = "MyError";
    }
}
throw new MyError("custom", );
