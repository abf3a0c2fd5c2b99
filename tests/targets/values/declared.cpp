// Texts whose class is only declared in this unit, as clang has them: it leaves the definition to the library's own debug info.
#include <cstdio>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

struct Library {
    std::string text, small;
    std::vector<std::string> names;
    std::map<std::string, int> map;
    std::wstring wide;
    std::pair<std::string, int> pair;
    std::string *pointer;
} library;

int main()
{
    library.text = "a text that is long enough to be somewhere else", library.small = "small", library.names = {"a", "bb"}, library.map = {{"k", 1}};
    library.wide = L"wide", library.pair = {"p", 2}, library.pointer = &library.small;
    printf("group|Library|%llu\n", (unsigned long long)&library);
    printf("expect|text|\"%s\"\nexpect|small|\"%s\"\n", library.text.c_str(), library.small.c_str());
    printf("expect|names|[\"%s\", \"%s\"]\n", library.names[0].c_str(), library.names[1].c_str());
    printf("expect|map|{\"k\": %d}\nexpect|wide|\"%ls\"\n", library.map["k"], library.wide.c_str());
    printf("expect|pair|[\"%s\", %d]\n", library.pair.first.c_str(), library.pair.second);
    printf("expect|pointer|{\"@\": \"%p\", \"*\": \"%s\"}\nready\n", (void *)library.pointer, library.pointer->c_str());
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
}
