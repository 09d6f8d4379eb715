ROUNDS = 1


def count(text):
    total = 0
    for _ in range(ROUNDS):
        total = 0
        for word in text.split(" "):
            if word:
                total += 1
    return total
