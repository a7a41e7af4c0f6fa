// A region that recurses back into itself; the first and later invocations.
//@ invocation: 1,3
//@ codelets: 3
//@ flags: -O0 ; -O3 -march=native
#include <stdio.h>

static int board[12], solutions, visits[12];

static void place(int row, int n) {
    if (row == n) {
        solutions++;
        return;
    }
    for (int column = 0; column < n; column++) {
        int ok = 1;
        for (int i = 0; i < row; i++)
            if (board[i] == column || board[i] - column == i - row || board[i] - column == row - i)
                ok = 0;
        visits[row]++;
        if (ok) {
            board[row] = column;
            place(row + 1, n);
        }
    }
}

int main(void) {
    place(0, 6);
    place(0, 5);
    long sum = 0;
    for (int i = 0; i < 12; i++)
        sum = sum * 31 + visits[i] + board[i];
    printf("%d %ld\n", solutions, sum);
}
