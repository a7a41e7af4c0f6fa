#include "shape.h"
#include <algorithm>
#include <cmath>
#include <stdexcept>

double Spring::factor(double squared) const {
    double r = std::sqrt(squared);
    return stiffness_ * (length_ - r) / r;
}

double LennardJones::factor(double squared) const {
    double s = sigma2_ / squared, s3 = s * s * s;
    return 24.0 * epsilon_ * (2.0 * s3 * s3 - s3) / squared;
}

System::System(int count, double box, double cutoff) : box_(box), cutoff_(cutoff), side_(int(box / cutoff)) {
    if (side_ < 1) throw std::invalid_argument("the box is smaller than the cutoff");
    forces_.push_back(std::make_unique<LennardJones>(1.0, 0.8));
    forces_.push_back(std::make_unique<Spring>(2.0, 0.9));
    cells_.resize(size_t(side_) * side_ * side_);
    unsigned long state = 12345;
    auto next = [&] {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        return double(state >> 33) / double(1UL << 31);
    };
    for (int i = 0; i < count; i++) {
        Vec p{next() * box, next() * box, next() * box};
        Vec v{next() - 0.5, next() - 0.5, next() - 0.5};
        particles_.push_back({p, v, {0, 0, 0}, i % 3 == 0});
    }
}

void System::sort() {
    for (auto &cell : cells_) cell.clear();
    for (size_t i = 0; i < particles_.size(); i++) {
        auto at = [&](double x) { return std::clamp(int(x / box_ * side_), 0, side_ - 1); };
        const Vec &p = particles_[i].position;
        cells_[(size_t(at(p.x)) * side_ + at(p.y)) * side_ + at(p.z)].push_back(int(i));
    }
}

void System::interact() {
    for (int c = 0; c < int(cells_.size()); c++) {
        int cx = c / (side_ * side_), cy = c / side_ % side_, cz = c % side_;
        for (int i : cells_[c]) {
            Particle &a = particles_[i];
            a.force = {0, 0, 0};
            for (int x = std::max(cx - 1, 0); x <= std::min(cx + 1, side_ - 1); x++)
                for (int y = std::max(cy - 1, 0); y <= std::min(cy + 1, side_ - 1); y++)
                    for (int z = std::max(cz - 1, 0); z <= std::min(cz + 1, side_ - 1); z++)
                        for (int j : cells_[(size_t(x) * side_ + y) * side_ + z]) {
                            if (i == j) continue;
                            const Particle &b = particles_[j];
                            Vec d = a.position - b.position;
                            double squared = dot(d, d) + 0.05;
                            if (squared > cutoff_ * cutoff_) continue;
                            double f = forces_[a.species ^ b.species]->factor(squared);
                            a.force.x += f * d.x;
                            a.force.y += f * d.y;
                            a.force.z += f * d.z;
                        }
        }
    }
}

void System::move(double dt) {
    for (Particle &p : particles_) {
        auto axis = [&](double &x, double &v, double f) {
            v += dt * std::clamp(f, -50.0, 50.0);
            x += dt * v;
            if (x < 0 || x > box_) {
                v = -v;
                x = std::clamp(x, 0.0, box_);
            }
        };
        axis(p.position.x, p.velocity.x, p.force.x);
        axis(p.position.y, p.velocity.y, p.force.y);
        axis(p.position.z, p.velocity.z, p.force.z);
    }
}

double System::kinetic() const {
    double sum = 0;
    for (const Particle &p : particles_) sum += 0.5 * dot(p.velocity, p.velocity);
    return sum;
}
