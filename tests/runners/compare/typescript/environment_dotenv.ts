// file: .env
//| FROM_FILE=the file
// file: .env.local
//| FROM_LOCAL=$FROM_FILE
// either: started preloaded
console.log(process.env.FROM_FILE, process.env.FROM_LOCAL);
