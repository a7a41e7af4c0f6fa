// Loops of OpenMP.
//@ vary: N 1000 20000
//@ pick: SCHEDULE static | dynamic, 16 | guided
//@ flags: -fopenmp
static int f@_data[$N];
word f@(word x) {
  word sum = 0;
  int most = 0;
#pragma omp parallel for schedule($SCHEDULE) num_threads(2)
  for (int i = 0; i < $N; i++) f@_data[i] = (int)((x + i * 31ul) % 1009);
#pragma omp parallel for schedule($SCHEDULE) reduction(+ : sum) reduction(max : most) num_threads(2)
  for (int i = 0; i < $N; i++) {
    sum += (word)f@_data[i] * (i & 7);
    if (f@_data[i] > most) most = f@_data[i];
  }
  return mix(sum, most);
}
