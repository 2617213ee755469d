/* nearest.c: see nearest.h. */
#include "base/nearest.h"

#include <string.h>

enum { LETTERS = 40 };

static int least(int a, int b, int c)
{
    int smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

/* d[i][j]: from the first i letters of a to the first j of b; three rows of it are kept. */
int tutti__word_distance(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b);
    int rows[3][LETTERS + 1];
    if (m > LETTERS || n > LETTERS)
        return 2 * LETTERS;
    for (size_t j = 0; j <= n; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= m; i++) {
        int *now = rows[i % 3], *before = rows[(i + 2) % 3], *two = rows[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= n; j++) {
            now[j] = least(before[j] + 1, now[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                two[j - 2] + 1 < now[j])
                now[j] = two[j - 2] + 1;
        }
    }
    return rows[m % 3][n];
}

bool tutti__word_near(const char *word, int distance)
{
    int most = (int)strlen(word) / 3;
    return distance <= (most > 1 ? most : 1);
}

void tutti__nearest_try(tutti_nearest *nearest, const char *candidate)
{
    int distance = tutti__word_distance(nearest->word, candidate);
    if (!tutti__word_near(nearest->word, distance) ||
        (nearest->found && distance >= nearest->distance))
        return;
    nearest->found = candidate;
    nearest->distance = distance;
}
