# frozen_string_literal: true

module Pitwall
  module Record
    module Import
      class PerfScript < Format
        # The line that begins a sample. Fields that the file does not have are nil; the comm is "" then.
        #
        # comm: the thread's name · time_ns: of perf's clock · period: how much of the event the sample stands for ·
        # event: "task-clock", "cycles:P" · rest: what follows the event on the line: the frame, where no call graph was
        # recorded
        Header = Struct.new(:comm, :pid, :tid, :time_ns, :period, :event, :rest)

        # Reads the lines that begin samples. `perf script` prints the fields that `-F` names, always in the same order:
        # comm, pid/tid, [cpu], misc, time, period, event.
        # @api private
        module Headers
          IDS = %r{(?<pid>-?\d{1,10})(?:/(?<tid>-?\d{1,10}))?(?=\s|\z)(?:\s+\[\d+\])?
                   (?:\s+[KUGHuVI][\w!]{0,4}(?=\s))?}x.freeze
          TIME = /(?<seconds>\d{1,12})\.(?<fraction>\d{6}(?:\d{3})?):(?=\s|\z)/.freeze
          EVENT = /(?<event>PERF_RECORD_.*|(?:raw 0x\h+|[^\s\d\[(][^\s]*)(?=:(?:\s|\z))):?/m.freeze
          # From the form that says most to the one that says least. A comm may hold spaces and numbers, so a line is
          # read by the first form that fits.
          STRONG = [
            /\A\s*(?<comm>.*?)\s*(?<!\S)#{IDS}\s*#{TIME}\s+(?:(?<period>\d{1,19})\s+)?#{EVENT}/m,
            /\A\s*(?<comm>.*?)\s*(?<!\S)#{IDS}\s*#{TIME}(?:\s+(?<period>\d{1,19}))?\s*\z/m,
            /\A\s*(?<comm>.*?)\s*(?<!\S)#{IDS}\s*(?:(?<period>\d{1,19})\s+)?#{EVENT}/m,
            /\A\s*(?<comm>\S.*?)?\s*#{TIME}\s+(?:(?<period>\d{1,19})\s+)?#{EVENT}/m
          ].freeze
          # Any text may look so. Only the frames that follow tell that it begins a sample.
          WEAK = [
            /\A\s*(?<comm>\S.*?)?\s*#{TIME}(?:\s+(?<period>\d{1,19}))?\s*\z/m,
            /\A\s*(?<comm>.*?)\s*(?<!\S)#{IDS}\s*(?:(?<period>\d{1,19})\s*)?\z/m,
            /\A\s*(?<comm>\S.*?)?\s*(?:(?<period>\d{1,19})\s+)?#{EVENT}\s*\z/m,
            /\A\s*(?<comm>\S.{0,31}?)\s*\z/m
          ].freeze
          # Bytes in which all fields before the frame stand.
          FIELDS = 512
          private_constant :IDS, :TIME, :EVENT, :STRONG, :WEAK, :FIELDS

          module_function

          # @return [Header, nil] of a line that is certainly one
          #: (String) -> Header?
          def strong(line) = of(STRONG, line)

          # @return [Header, nil] of a line that is one if frames follow
          #: (String) -> Header?
          def weak(line) = of(WEAK, line)

          def of(forms, line)
            beginning = line.byteslice(0, FIELDS)
            forms.each do |form|
              found = form.match(beginning) or next
              return header(found.named_captures, line.byteslice(found.end(0)..).to_s.strip)
            end
            nil
          end

          def header(fields, rest)
            pid, tid = fields["pid"], fields["tid"]
            Header.new(fields["comm"].to_s, tid ? pid.to_i : nil, (tid || pid)&.to_i, time(fields),
                       fields["period"]&.to_i, fields["event"], rest)
          end

          def time(fields)
            seconds = fields["seconds"] or return
            seconds.to_i * 1_000_000_000 + fields["fraction"].ljust(9, "0").to_i
          end
        end
        private_constant :Headers
      end
    end
  end
end
