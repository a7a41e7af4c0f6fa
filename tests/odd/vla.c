// Arrays of variable length, of one and two dimensions.
//@ vary: N 5 40
static word f@_sum(int rows, int columns, word of[rows][columns]) {
  word sum = 0;
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++) sum = mix(sum, of[r][c]);
  return sum;
}
word f@(word x) {
  for (int i = 1; i < $N; i++) {
    word grid[i][i + 3];
    for (int r = 0; r < i; r++)
      for (int c = 0; c < i + 3; c++) grid[r][c] = x + r * c;
    x = mix(x, f@_sum(i, i + 3, grid) + sizeof grid);
  }
  return x;
}
