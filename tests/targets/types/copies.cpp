// Types that have name, size and place in the source in common, and are not the same.
#include <cstdio>

template <class T> struct Stack {
    struct Node {
        T value;
        Node *next;
    };
    Node *top;
};

__attribute__((noinline)) void both(const Stack<long> &first, const Stack<double> &second)
{
    __asm__ volatile("" : : "r"(&first), "r"(&second) : "memory");
}

int main()
{
    Stack<long>::Node whole{7, nullptr};
    Stack<double>::Node half{2.5, nullptr};
    Stack<long> first{&whole};
    Stack<double> second{&half};
    both(first, second);
    puts("done");
}
