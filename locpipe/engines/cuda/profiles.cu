// Profiles of radial kernels, of u2 = the squared distance in bandwidths.
//
// Each stands here twice.  `log_weight` is exact to the last places and serves wherever sums carry
// a shift.  `weight` is the short form for float, with how far its value moves when u2 is wrong:
// that decides which rows float may keep.  Multiplications and additions are contracted only where
// fma() is written (compiled with --fmad=false), so that all compilers round alike.

enum Profile {
  GAUSSIAN,      // exp(-u2 / 2)
  EPANECHNIKOV,  // 1 - u2
  BIWEIGHT,      // (1 - u2)^2
  TRIWEIGHT,     // (1 - u2)^3
  TRICUBE,       // (1 - u^3)^3
  TRIANGULAR,    // 1 - u
  UNIFORM,       // 1 up to u = 1, the edge included
  COSINE,        // cos(pi u / 2)
  EXPONENTIAL,   // exp(-u)
  LOGISTIC,      // 1 / (4 cosh^2(u / 2))
  STUDENT,       // (1 + u2 / nu)^-power; Cauchy has nu = 1
  DOT            // exp(u2), where u2 is a scaled dot product
};

struct Shape {
  double nu;
  double power;
};

template <typename T>
__device__ T no_weight() {
  return log(T(0));
}

template <typename T>
__device__ T log_student(T u2, Shape shape) {
  T ratio = u2 / T(shape.nu);
  T log_ratio = isinf(ratio) ? log(u2) - log(T(shape.nu)) : log1p(ratio);
  return -T(shape.power) * log_ratio;
}

template <typename T>
__device__ T log_logistic(T u) {
  return -u - T(2) * log1p(exp(-u));
}

template <int PROFILE, typename T>
__device__ T log_weight(T u2, Shape shape) {
  if constexpr (PROFILE == GAUSSIAN) return T(-0.5) * u2;
  if constexpr (PROFILE == EXPONENTIAL) return -sqrt(u2);
  if constexpr (PROFILE == LOGISTIC) return log_logistic(sqrt(u2));
  if constexpr (PROFILE == STUDENT) return log_student(u2, shape);
  if constexpr (PROFILE == UNIFORM) return u2 <= T(1) ? T(0) : no_weight<T>();
  if constexpr (PROFILE == DOT) return u2;
  if (!(u2 < T(1))) return no_weight<T>();
  if constexpr (PROFILE == EPANECHNIKOV) return log1p(-u2);
  if constexpr (PROFILE == BIWEIGHT) return T(2) * log1p(-u2);
  if constexpr (PROFILE == TRIWEIGHT) return T(3) * log1p(-u2);
  if constexpr (PROFILE == TRICUBE) return T(3) * log1p(-u2 * sqrt(u2));
  if constexpr (PROFILE == TRIANGULAR) return log1p(-sqrt(u2));
  if constexpr (PROFILE == COSINE) return log(cos(T(1.5707963267948966) * sqrt(u2)));
}

// A weight, and a bound of |dw / d log u2|: what an error of u2 in its last place does to it.
struct Weight {
  float value;
  float slope;
};

template <int PROFILE>
__device__ Weight compact_weight(float u2) {
  float rest = 1.0f - u2, u = sqrtf(u2);
  if constexpr (PROFILE == EPANECHNIKOV) return {rest, u2};
  if constexpr (PROFILE == BIWEIGHT) return {rest * rest, 2.0f * u2 * rest};
  if constexpr (PROFILE == TRIWEIGHT) return {rest * rest * rest, 3.0f * u2 * rest * rest};
  if constexpr (PROFILE == TRIANGULAR) return {1.0f - u, u};
  if constexpr (PROFILE == COSINE) return {cosf(1.57079632f * u), 1.57079632f * u};
  if constexpr (PROFILE == TRICUBE) {
    float cube = u2 * u, hole = 1.0f - cube;
    return {hole * hole * hole, 4.5f * cube * hole * hole};
  }
}

template <int PROFILE>
__device__ Weight weight(float u2, Shape shape) {
  if constexpr (PROFILE == GAUSSIAN || PROFILE == EXPONENTIAL || PROFILE == STUDENT) {
    float log_w = log_weight<PROFILE>(u2, shape), w = expf(log_w);
    return {w, -log_w * w};
  } else if constexpr (PROFILE == LOGISTIC) {
    float u = sqrtf(u2), e = expf(-u), w = e / ((1.0f + e) * (1.0f + e));
    return {w, u * w};
  } else {
    return u2 < 1.0f ? compact_weight<PROFILE>(u2) : Weight{0.0f, 0.0f};
  }
}
