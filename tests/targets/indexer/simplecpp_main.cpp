// A program around simplecpp, the preprocessor that comes with cppcheck (tests/harness/real_programs.py): simplecpp [-Dname=value] [-Uname] [-Ifolder] file
#include <fstream>
#include <iostream>

#include "simplecpp.h"

int main(int argc, char **argv)
{
    simplecpp::DUI dui;
    std::string file;
    for (int i = 1; i < argc; i++) {
        const std::string word(argv[i]);
        const std::string kind = word.substr(0, 2), rest = word.size() > 2 ? word.substr(2) : "";
        if (kind == "-D")
            dui.defines.push_back(rest);
        else if (kind == "-U")
            dui.undefined.insert(rest);
        else if (kind == "-I")
            dui.includePaths.push_back(rest);
        else
            file = word;
    }
    std::ifstream stream(file);
    std::vector<std::string> files;
    simplecpp::OutputList messages;
    simplecpp::TokenList raw(stream, files, file, &messages);
    raw.removeComments();
    std::map<std::string, simplecpp::TokenList *> included = simplecpp::load(raw, files, dui, &messages);
    simplecpp::TokenList output(files);
    std::list<simplecpp::MacroUsage> usage;
    std::list<simplecpp::IfCond> conditions;
    simplecpp::preprocess(output, raw, files, included, dui, &messages, &usage, &conditions);
    std::cout << output.stringify() << '\n';
    for (const simplecpp::Output &message : messages)
        std::cout << message.location.file() << ':' << message.location.line << ": " << message.msg << '\n';
    simplecpp::cleanup(included);
    return 0;
}
