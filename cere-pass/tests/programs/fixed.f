      PROGRAM FIXED
      INTEGER I, N, PRIMES
      REAL X(100), S
      DATA N /100/
      PRIMES = 0
      DO 30 I = 2, N
        DO 20 J = 2, I - 1
          IF (MOD(I, J) .EQ. 0) GOTO 30
20      CONTINUE
        PRIMES = PRIMES + 1
        X(PRIMES) = 1.0 / I
30    CONTINUE
      S = 0
      DO 40 I = 1, PRIMES
40    S = S + X(I)
      WRITE (*, '(I6,E15.7)') PRIMES, S
      END
