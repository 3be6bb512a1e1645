# frozen_string_literal: true

module Pitwall
  module Analyse
    module Findings
      # Threads wait for a lock that one of them holds.
      module Lock
        # Smallest share of the threads' time.
        SHARE = 0.2
        private_constant :SHARE

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, _found)
          waits = evidence.waits.select { |wait| WaitingCalls.lock?(wait.name) }
          waited = waits.sum(&:wall)
          threads = threads_of(waits).sum { |thread| evidence.work_of(thread) }
          return [] if waited < LEAST_NS || waited < threads * SHARE

          groups = waits.group_by { |wait| [wait.path, wait.line] }
          place = groups.max_by { |key, group| [group.sum(&:wall), key] }.last.first
          inner = holder(evidence, place, waited / threads_of(waits).size)
          path, line, method = inner || [place.path, place.line, place.method]
          return [] if path.empty?

          figures = { threads: threads_of(waits).size, waiting_path: place.path, waiting_line: place.line }
          [evidence.finding(:lock, [path, line, method&.name], waited, whole: threads, of: :threads,
                            subject: place.name, figures: figures, view: ["--lines", path])]
        end

        # The line that takes most time under the lock. Recordings do not identify locks, so it is a lock that is taken
        # at the line where threads wait, or any other lock.
        # @param least [Integer] ns; a lock that was held for less than half of it cannot have caused the wait
        def self.holder(evidence, place, least)
          here, others = evidence.held.partition { |held| [held.path, held.line] == [place.path, place.line] }
          held = (here.any? ? here : others).max_by(&:wall) or return
          most = (here + others).max_by(&:wall)
          held = most if most.wall > held.wall * 2
          return if held.wall * 2 < least

          held.lines.max_by { |key, ns| [ns, key.first(2)] }&.first || [held.path, held.line, held.method]
        end

        def self.threads_of(waits) = waits.map(&:thread).uniq
        private_class_method :holder, :threads_of
      end

      # The program waits for a child process, for data or in a sleep.
      module Waiting
        # Smallest share of the time.
        SHARE = 0.25
        private_constant :SHARE

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, _found)
          known = evidence.waits.reject { |wait| wait.path.empty? || WaitingCalls.what(wait.name).nil? }
          groups = known.group_by { |wait| [WaitingCalls.what(wait.name), wait.path, wait.line] }
          (what, path, line), waits = groups.max_by { |key, group| [group.sum(&:wall), key.map(&:to_s)] }
          waited = waits.to_a.sum(&:wall)
          return [] if waits.nil? || waited < LEAST_NS || waited < evidence.work * SHARE

          first = waits.max_by(&:wall)
          view = evidence.states? ? ["--state", "blocked", "--bottom-up"] : ["--lines", path]
          [evidence.finding(:waiting, [path, line, first.method&.name], waited, whole: evidence.work, of: :wall,
                            subject: first.name, figures: { what: what }, view: view)]
        end
      end
    end
  end
end
