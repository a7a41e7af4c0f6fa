// Temporary files.
//@ vary: N 3 20
//@ allowed: outside state
word f@(word x) {
  FILE *file = tmpfile();
  for (int i = 0; i < $N; i++) {
    fprintf(file, "%d %lx\n", i, x);
    x = mix(x, i);
  }
  rewind(file);
  int number;
  word value;
  while (fscanf(file, "%d %lx", &number, &value) == 2) x = mix(x, value + number);
  fclose(file);
  return x;
}
