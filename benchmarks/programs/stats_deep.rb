# frozen_string_literal: true

module Programs
  # Asks for a file that there isn't, so many frames deep: hardly anything but the system call.
  class StatsDeep
    DEPTH = 50
    PATH = "/pitwall-benchmark/no-such-file"

    #: (Integer) -> void
    def run(times) = down(DEPTH - 3, times)

    private

    def down(frames, times)
      return down(frames - 1, times) if frames.positive?

      ask while (times -= 1) >= 0
    end

    def ask = File.exist?(PATH)
  end
end
