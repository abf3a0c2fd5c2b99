int main(void) { return "text" }
