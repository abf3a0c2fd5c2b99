// json() of the standard library's classes.
#pragma once
#include <any>
#include <array>
#include <atomic>
#include <bitset>
#include <chrono>
#include <deque>
#include <filesystem>
#include <forward_list>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <stack>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <valarray>
#include <variant>

#include "json.h"

template <class C, class R, class A> struct Json<std::basic_string<C, R, A>> {
    static std::string of(const std::basic_string<C, R, A> &value) { return text(value.data(), value.size()); }
};
template <class C> struct Json<std::basic_string_view<C>> {
    static std::string of(std::basic_string_view<C> value) { return text(value.data(), value.size()); }
};
template <> struct Json<std::filesystem::path> {
    static std::string of(const std::filesystem::path &value) { return json(value.native()); }
};

// Containers of elements in their own order
template <class T> std::string row(const T &value)
{
    return list_of(value.begin(), (size_t)std::distance(value.begin(), value.end()));
}
template <class T, class A> struct Json<std::vector<T, A>> {
    static std::string of(const std::vector<T, A> &value)
    {
        if constexpr (std::is_same_v<T, char>)
            return text(value.data(), value.size());
        else
            return row(value);
    }
};
template <class A> struct Json<std::vector<bool, A>> {
    static std::string of(const std::vector<bool, A> &value)
    {
        std::deque<bool> plain(value.begin(), value.end());
        return row(plain);
    }
};
template <class T, size_t N> struct Json<std::array<T, N>> {
    static std::string of(const std::array<T, N> &value) { return row(value); }
};
template <size_t N> struct Json<std::array<char, N>> {
    static std::string of(const std::array<char, N> &value) { return text(value.data(), strnlen(value.data(), N)); }
};
template <class T, class A> struct Json<std::deque<T, A>> {
    static std::string of(const std::deque<T, A> &value) { return row(value); }
};
template <class T, class A> struct Json<std::list<T, A>> {
    static std::string of(const std::list<T, A> &value) { return row(value); }
};
template <class T, class A> struct Json<std::forward_list<T, A>> {
    static std::string of(const std::forward_list<T, A> &value)
    {
        size_t count = (size_t)std::distance(value.begin(), value.end());
        if (count <= ELEMENTS)
            return row(value);
        std::string shown = list_of(value.begin(), ELEMENTS);
        return shown.substr(0, shown.size() - 1) + ", \"…\"]";
    }
};
template <class T, class C, class A> struct Json<std::set<T, C, A>> {
    static std::string of(const std::set<T, C, A> &value) { return row(value); }
};
template <class T, class C, class A> struct Json<std::multiset<T, C, A>> {
    static std::string of(const std::multiset<T, C, A> &value) { return row(value); }
};
template <class T, class H, class E, class A> struct Json<std::unordered_set<T, H, E, A>> {
    static std::string of(const std::unordered_set<T, H, E, A> &value) { return row(value); }
};
template <class T, class H, class E, class A> struct Json<std::unordered_multiset<T, H, E, A>> {
    static std::string of(const std::unordered_multiset<T, H, E, A> &value) { return row(value); }
};
template <class T, size_t N> struct Json<std::span<T, N>> {
    static std::string of(std::span<T, N> value) { return row(value); }
};
template <class T> struct Json<std::initializer_list<T>> {
    static std::string of(std::initializer_list<T> value) { return row(value); }
};
template <class T> struct Json<std::valarray<T>> {
    static std::string of(const std::valarray<T> &value) { return list_of(std::begin(value), value.size()); }
};
template <size_t N> struct Json<std::bitset<N>> {
    static std::string of(const std::bitset<N> &value)
    {
        std::deque<bool> plain;
        for (size_t index = 0; index < N; index++)
            plain.push_back(value[index]);
        return row(plain);
    }
};

// Adaptors: a class derived from one may see its container
template <class A> struct Opened : A {
    static const typename A::container_type &in(const A &adaptor) { return adaptor.*&Opened::c; }
};
template <class T, class C> struct Json<std::stack<T, C>> {
    static std::string of(const std::stack<T, C> &value) { return json(Opened<std::stack<T, C>>::in(value)); }
};
template <class T, class C> struct Json<std::queue<T, C>> {
    static std::string of(const std::queue<T, C> &value) { return json(Opened<std::queue<T, C>>::in(value)); }
};
template <class T, class C, class L> struct Json<std::priority_queue<T, C, L>> {
    static std::string of(const std::priority_queue<T, C, L> &value) { return json(Opened<std::priority_queue<T, C, L>>::in(value)); }
};

// Maps: an object where keys are texts, numbers or enumerators, and distinct
template <class M> std::string map_of(const M &value)
{
    using K = typename M::key_type;
    constexpr bool is_key = (std::is_arithmetic_v<K> && !std::is_same_v<K, bool>) || std::is_enum_v<K> || std::is_convertible_v<K, std::string_view>;
    std::map<std::string, int> seen;
    Members members;
    std::string pairs = "[";
    for (auto &[key, inner] : value) {
        if (members.size() == ELEMENTS)
            break;
        std::string shown = json(key), name = shown[0] == '"' ? shown.substr(1, shown.size() - 2) : shown;
        pairs += (members.empty() ? "" : ", ") + ("[" + shown + ", " + json(inner) + "]");
        seen[name]++;
        members.emplace_back(name, json(inner));
    }
    std::string rest = value.size() > ELEMENTS ? std::to_string(value.size() - ELEMENTS) + " more" : "";
    if (is_key && seen.size() == members.size()) {
        if (!rest.empty())
            members.emplace_back("…", in_quotes(rest));
        return object(members);
    }
    return pairs + (rest.empty() ? "]" : ", \"… " + rest + "\"]");
}
template <class K, class V, class C, class A> struct Json<std::map<K, V, C, A>> {
    static std::string of(const std::map<K, V, C, A> &value) { return map_of(value); }
};
template <class K, class V, class C, class A> struct Json<std::multimap<K, V, C, A>> {
    static std::string of(const std::multimap<K, V, C, A> &value) { return map_of(value); }
};
template <class K, class V, class H, class E, class A> struct Json<std::unordered_map<K, V, H, E, A>> {
    static std::string of(const std::unordered_map<K, V, H, E, A> &value) { return map_of(value); }
};
template <class K, class V, class H, class E, class A> struct Json<std::unordered_multimap<K, V, H, E, A>> {
    static std::string of(const std::unordered_multimap<K, V, H, E, A> &value) { return map_of(value); }
};

// Values around values
template <class A, class B> struct Json<std::pair<A, B>> {
    static std::string of(const std::pair<A, B> &value) { return "[" + json(value.first) + ", " + json(value.second) + "]"; }
};
template <class... T> struct Json<std::tuple<T...>> {
    static std::string of(const std::tuple<T...> &value)
    {
        std::string out;
        std::apply([&out](auto &...parts) { ((out += (out.empty() ? "[" : ", ") + json(parts)), ...); }, value);
        return out + "]";
    }
};
template <> struct Json<std::monostate> {
    static std::string of(std::monostate) { return "{}"; }
};
template <class T> struct Json<std::optional<T>> {
    static std::string of(const std::optional<T> &value) { return value ? json(*value) : "null"; }
};
template <class T> struct Json<std::atomic<T>> {
    static std::string of(const std::atomic<T> &value) { return json(value.load()); }
};
template <class T> struct Json<std::complex<T>> {
    static std::string of(const std::complex<T> &value)
    {
        std::string imaginary = shortest(value.imag());
        return in_quotes(shortest(value.real()) + (imaginary[0] == '-' ? "" : "+") + imaginary + "i");
    }
};
template <class T> struct Json<std::reference_wrapper<T>> {
    static std::string of(const std::reference_wrapper<T> &value) { return json(&value.get()); }
};

// Smart pointers
template <class T, class D> struct Json<std::unique_ptr<T, D>> {
    static std::string of(const std::unique_ptr<T, D> &value) { return json(value.get()); }
};
template <class T> struct Json<std::shared_ptr<T>> {
    static std::string of(const std::shared_ptr<T> &value)
    {
        if (!value)
            return "null";
        return pointed(value.get(), json(*value), ", \"@use_count\": " + std::to_string(value.use_count()));
    }
};
template <class T> struct Json<std::weak_ptr<T>> {
    static std::string of(const std::weak_ptr<T> &value)
    {
        long count = value.use_count();
        auto owner = value.lock();
        if (count == 0)
            return value.owner_before(std::weak_ptr<T>{}) || std::weak_ptr<T>{}.owner_before(value) ? "\"<expired>\"" : "null";
        return pointed(owner.get(), json(*owner), ", \"@use_count\": " + std::to_string(count));
    }
};

// Times
template <class R, class P> struct Json<std::chrono::duration<R, P>> {
    static std::string of(const std::chrono::duration<R, P> &value)
    {
        const char *unit = "?";
        using namespace std;
        if (is_same_v<P, nano>) unit = "ns";
        if (is_same_v<P, micro>) unit = "us";
        if (is_same_v<P, milli>) unit = "ms";
        if (is_same_v<P, ratio<1>>) unit = "s";
        if (is_same_v<P, ratio<60>>) unit = "min";
        if (is_same_v<P, ratio<3600>>) unit = "h";
        if (is_same_v<P, ratio<86400>>) unit = "days";
        if (is_same_v<P, ratio<1, 30>>) unit = "x 1/30 s";
        return in_quotes(json(value.count()) + " " + unit);
    }
};
template <class D> struct Json<std::chrono::time_point<std::chrono::system_clock, D>> {
    static std::string of(const std::chrono::time_point<std::chrono::system_clock, D> &value)
    {
        auto whole = std::chrono::floor<std::chrono::seconds>(value);
        time_t seconds = whole.time_since_epoch().count();
        struct tm parts;
        gmtime_r(&seconds, &parts);
        char out[64], part[32] = "";
        strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%S", &parts);
        long long rest = std::chrono::duration_cast<std::chrono::nanoseconds>(value - whole).count();
        if constexpr (std::ratio_less_v<typename D::period, std::micro>)
            snprintf(part, sizeof part, ".%09lld", rest);
        else if constexpr (std::ratio_less_v<typename D::period, std::milli>)
            snprintf(part, sizeof part, ".%06lld", rest / 1000);
        else if constexpr (std::ratio_less_v<typename D::period, std::ratio<1>>)
            snprintf(part, sizeof part, ".%03lld", rest / 1000000);
        return in_quotes(std::string(out) + part + "Z");
    }
};
template <class D> struct Json<std::chrono::time_point<std::chrono::steady_clock, D>> {
    static std::string of(const std::chrono::time_point<std::chrono::steady_clock, D> &value) { return json(value.time_since_epoch()); }
};
