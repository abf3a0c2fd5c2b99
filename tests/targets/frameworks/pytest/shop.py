def checked(value):
    if value == 4:
        raise ValueError("4 is not 3")
    return value
