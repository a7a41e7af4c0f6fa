#pragma once
#include <memory>
#include <vector>

struct Vec {
    double x, y, z;
};
inline Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
inline double dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

struct Particle {
    Vec position, velocity, force;
    int species;
};

// A pair force: what varies from one pair of species to another.
class Force {
public:
    virtual ~Force() = default;
    // The factor that the vector between two particles is scaled by, given its squared length.
    virtual double factor(double squared) const = 0;
};

class Spring : public Force {
    double stiffness_, length_;

public:
    Spring(double stiffness, double length) : stiffness_(stiffness), length_(length) {}
    double factor(double squared) const override;
};

class LennardJones : public Force {
    double epsilon_, sigma2_;

public:
    LennardJones(double epsilon, double sigma) : epsilon_(epsilon), sigma2_(sigma * sigma) {}
    double factor(double squared) const override;
};

class System {
    std::vector<Particle> particles_;
    std::vector<std::unique_ptr<Force>> forces_;
    std::vector<std::vector<int>> cells_;
    double box_, cutoff_;
    int side_;

public:
    System(int count, double box, double cutoff);
    void sort();
    void interact();
    void move(double dt);
    double kinetic() const;
};
