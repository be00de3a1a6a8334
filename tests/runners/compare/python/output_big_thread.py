import threading


def speak(word):
    for n in range(2000):
        print(word * 40)


threads = [threading.Thread(target=speak, args=(w,)) for w in "aaa"]
for t in threads:
    t.start()
