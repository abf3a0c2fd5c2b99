/* Settles a day's payments, one after another, and keeps the last ones in a journal. It crashes before the day is over. */
#include <stdio.h>
#include <time.h>

#define JOURNAL_SLOTS 12
#define PAYMENTS 40
#define FEE_CENTS 5

struct account {
    long cents;
    const char *owner;
};

struct journal {
    long cents[JOURNAL_SLOTS]; /* the last payments, oldest overwritten first */
    struct account *fees;      /* who earns the fee of each payment */
};

static int next_slot(int slot)
{
    if (slot > JOURNAL_SLOTS - 1)
        return 0;
    return slot + 1;
}

static long journal_write(struct journal *journal, int slot, long cents)
{
    journal->cents[slot] = cents;
    return cents;
}

static long charge_fee(struct journal *journal, long cents)
{
    journal->fees->cents += FEE_CENTS;
    return cents - FEE_CENTS;
}

static long settle(struct journal *journal, struct account *shop, int slot, long cents)
{
    journal_write(journal, slot, cents);
    long paid = charge_fee(journal, cents);
    shop->cents += paid;
    return paid;
}

int main(void)
{
    struct account bank = {0, "bank"}, shop = {0, "shop"};
    struct journal journal = {{0}, &bank};
    struct timespec between = {0, 200 * 1000 * 1000};
    int slot = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int number = 1; number <= PAYMENTS; number++) {
        long paid = settle(&journal, &shop, slot, 101 + number * 7919L % 900);
        printf("payment %d: %ld.%02ld to %s\n", number, paid / 100, paid % 100, shop.owner);
        slot = next_slot(slot);
        nanosleep(&between, NULL);
    }
    printf("shop has %ld cents, %s has %ld\n", shop.cents, bank.owner, bank.cents);
    return 0;
}
