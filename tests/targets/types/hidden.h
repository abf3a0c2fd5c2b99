// What only the second unit defines.
struct hidden {
    long key;
    struct hidden *next;
    char tag[12];
};
