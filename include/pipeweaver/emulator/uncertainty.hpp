// How far a real step may be from an emulated one, beyond what the cost database says of its own answers.
//
//   time of a pass      = costed * operator classes of the module * module * rank * task
//   time of a transfer  = costed * transfer
//   makespan            = replayed * schedule
//   bytes of a pass     = computed * activations of the module
//
// The operator classes' factor comes from the errors of the costs themselves (PassCost::Share::error_ns); the others
// are here. Each number is the standard deviation of a factor's logarithm: 0.08 is 8 % at most in two of three cases.
#pragma once

namespace pipeweaver::emulator {

struct Uncertainty {
    /// Systematic, one factor for each module of the model: all its passes are longer, or all shorter. Emulated against
    /// published layers of a multimodal model (DIP, arXiv 2504.14145: ViT 5B and Qwen2 32B on H800) the two modules are
    /// 8 to 12 % off, and not by the same.
    double module = 0.08;

    /// One factor for each GPU of the pipeline. Assumed: one GPU in a hundred is 10 % slow, which has a standard
    /// deviation of 0.1 * sqrt(0.01).
    double rank = 0.01;

    /// The deviation of every single pass from the average time of its shape. Assumed: jitter of a few per cent.
    double task = 0.02;

    /// One factor for all transfers of a step, beside the error of their cost. Assumed: messages are costed alone, and
    /// in a step share ports and memory with others.
    double transfer = 0.15;

    /// One factor for each schedule, of its own: what one way to run a model meets and another does not (launches,
    /// ports, allocators). Published runs, with the same fitted numbers for all, are off by 2.0 to 2.6 % on average
    /// (docs/accuracy.md: H100 2.0, Megatron's sequence-parallel paper 2.3, B200 2.6), a standard deviation of about
    /// 3 %. Assumed: half of it is the schedule's, half that of models and devices.
    double schedule = 0.015;

    /// One factor for what each module's passes hold. Assumed: what frameworks keep is known within a few per cent;
    /// weights, gradients and optimizer state are known exactly.
    double activations = 0.01;
};

}  // namespace pipeweaver::emulator
