int broken() { return "text" }
