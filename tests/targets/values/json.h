// What values should be shown as (strobe/values/README.md), made by the program from the live objects, through what their classes offer to everybody.
#pragma once
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <unistd.h>
#include <vector>

constexpr size_t ELEMENTS = 100, TEXT = 1024;

inline std::string in_quotes(std::string_view text)
{
    std::string out = "\"";
    for (char letter : text) {
        char escaped[8];
        if (letter == '"' || letter == '\\')
            out += '\\', out += letter;
        else if ((unsigned char)letter < 0x20)
            snprintf(escaped, sizeof escaped, "\\u%04x", letter), out += escaped;
        else
            out += letter;
    }
    return out + '"';
}

inline std::string address(const void *pointer)
{
    char text[32];
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)(uintptr_t)pointer);
    return text;
}

// Code units as UTF-8; well-formed ones only
template <class C> std::string utf8(const C *units, size_t count)
{
    std::string out;
    for (size_t at = 0; at < count; at++) {
        uint32_t code = (std::make_unsigned_t<C>)units[at];
        if constexpr (sizeof(C) == 1) {
            out += (char)code;
            continue;
        }
        if (sizeof(C) == 2 && code >= 0xD800 && code < 0xDC00)
            code = 0x10000 + ((code - 0xD800) << 10) + ((uint16_t)units[++at] - 0xDC00);
        if (code < 0x80)
            out += (char)code;
        else if (code < 0x800)
            out += (char)(0xC0 | code >> 6), out += (char)(0x80 | (code & 63));
        else if (code < 0x10000)
            out += (char)(0xE0 | code >> 12), out += (char)(0x80 | (code >> 6 & 63)), out += (char)(0x80 | (code & 63));
        else
            out += (char)(0xF0 | code >> 18), out += (char)(0x80 | (code >> 12 & 63)), out += (char)(0x80 | (code >> 6 & 63)), out += (char)(0x80 | (code & 63));
    }
    return out;
}

template <class C> std::string text(const C *units, size_t count)
{
    return in_quotes(utf8(units, count < TEXT ? count : TEXT) + (count > TEXT ? "…" : ""));
}

template <class F> std::string shortest(F value)
{
    if (std::isnan(value) || std::isinf(value))
        return std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
    char out[80];
    for (int digits = 1; digits < 22; digits++) {
        snprintf(out, sizeof out, "%.*Lg", digits, (long double)value);
        if ((sizeof(F) == 4 ? (F)strtof(out, nullptr) : sizeof(F) == 8 ? (F)strtod(out, nullptr) : (F)strtold(out, nullptr)) == value)
            break;
    }
    return out;
}

// json(value): an overload for each kind of type; user types have theirs beside them (found by their arguments)
template <class T> struct Json;
template <class T> std::string json(const T &value)
{
    return Json<std::remove_cv_t<T>>::of(value);
}

using Members = std::vector<std::pair<std::string, std::string>>;

inline std::string object(const Members &members)
{
    std::string out = "{";
    for (auto &[name, value] : members)
        out += (out.size() > 1 ? ", " : "") + in_quotes(name) + ": " + value;
    return out + "}";
}

template <class I> std::string list_of(I begin, size_t count)
{
    std::string out = "[";
    for (size_t index = 0; index < count && index < ELEMENTS; index++, ++begin)
        out += (index ? ", " : "") + json(*begin);
    if (count > ELEMENTS)
        out += ", \"… " + std::to_string(count - ELEMENTS) + " more\"";
    return out + "]";
}

// A pointer to what is shown as `value`
inline std::string pointed(const void *at, const std::string &value, const std::string &more = "")
{
    std::string head = "{\"@\": \"" + address(at) + "\"" + more;
    if (value[0] != '{')
        return head + ", \"*\": " + value + "}";
    return value == "{}" ? head + "}" : head + ", " + value.substr(1);
}

template <class T> struct Json {
    static std::string of(const T &value)
    {
        if constexpr (std::is_same_v<T, bool>)
            return value ? "true" : "false";
        else if constexpr (std::is_same_v<T, char>)
            return value >= 0x20 && value < 0x7f ? in_quotes(std::string(1, value)) : std::to_string((int)value);
        else if constexpr (std::is_same_v<T, wchar_t> || std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>)
            return in_quotes(utf8(&value, 1));
        else if constexpr (std::is_integral_v<T>)
            return std::to_string(value);
        else if constexpr (std::is_floating_point_v<T>)
            return shortest(value);
        else
            return members_of(value);
    }
};

template <> struct Json<const char *> {
    static std::string of(const char *value) { return value ? text(value, strlen(value)) : "null"; }
};
template <> struct Json<char *> : Json<const char *> {};

template <class T> struct Json<T *> {
    static std::string of(T *value) { return value ? pointed(value, json(*value)) : "null"; }
};

template <class T, size_t N> struct Json<T[N]> {
    static std::string of(const T (&value)[N]) { return list_of(value, N); }
};

inline void group(const char *type, const void *at)
{
    printf("group|%s|%llu\n", type, (unsigned long long)(uintptr_t)at);
}

template <class T> void expect(const char *name, const T &value)
{
    printf("expect|%s|%s\n", name, json(value).c_str());
}

inline void expect_text(const char *name, const std::string &shown)
{
    printf("expect|%s|%s\n", name, shown.c_str());
}

inline void ready()
{
    printf("ready\n");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
}
