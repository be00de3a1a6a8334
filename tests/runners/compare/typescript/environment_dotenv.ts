// file: .env
//| FROM_FILE=the file
// file: .env.local
//| FROM_LOCAL=$FROM_FILE
// either: light full
console.log(process.env.FROM_FILE, process.env.FROM_LOCAL);
