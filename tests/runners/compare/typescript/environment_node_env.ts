// env: NODE_ENV=production
// env: TZ=Asia/Tokyo
// either: started preloaded
console.log(process.env.NODE_ENV, new Date(0).getHours(), new Date(0).toString(), Intl.DateTimeFormat().resolvedOptions().timeZone);
