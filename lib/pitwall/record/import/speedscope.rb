# frozen_string_literal: true

require "pitwall/record/import/format"

module Pitwall
  module Record
    module Import
      # speedscope's JSON: a list of frames, and profiles, each of a thread. A "sampled" profile has stacks with
      # weights, an "evented" one has times at which frames were opened and closed.
      # Format: https://www.speedscope.app/file-format-schema.json
      # @api private
      class Speedscope < Format
        # Units that are no time → keyword of a row or a site.
        COUNTS = { "none" => :captures, "bytes" => :bytes }.freeze
        private_constant :COUNTS

        class << self
          def title = "speedscope"

          def fits?(source)
            file = source.json
            file.is_a?(Hash) && file["profiles"].is_a?(Array) && file["shared"].is_a?(Hash)
          end
        end

        def write(writer)
          file = object(@source.json, "the file")
          @infos = frames(file)
          profiles = list(file["profiles"], "profiles").map { |profile| object(profile, "a profile") }
          units = profiles.map { |profile| unit(profile) }
          sampled = units.empty? || units.any? { |weight,| weight != :bytes }
          @segment = segment(writer, sampled: sampled, program: text_or_nil(file["name"]))
          @frames = @infos.map { |name, path, first, line| [@segment.frame(name, path, first, kind(name, path)), line] }
          profiles.each_with_index { |profile, at| write_profile(profile, at + 1, *units[at]) }
          @segment.close
        end

        private

        def text_or_nil(value) = value.is_a?(String) && !value.empty? ? value : nil

        # Name, path, line of the definition and running line of each frame. The format has one line. Where a function
        # occurs with several, it is the running line; Pitwall writes that of the definition.
        def frames(file)
          found = list(object(file["shared"], "shared")["frames"], "shared.frames").map do |frame|
            frame = object(frame, "a frame")
            [string(frame["name"], "a frame's name"), name(frame["file"], "a frame's file"), line(frame["line"])]
          end
          ours = file["exporter"].to_s.start_with?("pitwall")
          found.map { |name, path, line| ours ? [name, path, line, 0] : [name, path, 0, line] }
        end

        # What a profile's weights are, and how much of it 1 is.
        def unit(profile)
          unit = profile.fetch("unit", "none")
          return [COUNTS[unit], 1] if COUNTS.key?(unit)

          ns = UNITS.fetch(unit) { refuse("has the unit #{unit.inspect.slice(0, 40)}, which is none of the format's") }
          [:wall, ns]
        end

        def write_profile(profile, thread, weight, unit)
          case profile["type"]
          when "sampled" then write_samples(profile, thread, weight, unit)
          when "evented" then write_events(profile, thread, weight, unit)
          else wrong("a profile's type", "sampled or evented", profile["type"])
          end
        end

        def write_samples(profile, thread, weight, unit)
          samples = list(profile["samples"], "samples")
          weights = list(profile["weights"], "weights")
          unless samples.size == weights.size
            refuse("is damaged: a profile has #{samples.size} samples and #{weights.size} weights")
          end
          start(profile, thread)
          samples.each_with_index do |stack, at|
            node = list(stack, "a sample").inject(0) { |parent, frame| below(parent, frame) }
            add(thread, node, weight, amount(weights[at], "a weight", unit))
          end
        end

        # A row ends at each event. Time in which nothing is open counts for no stack, but before the first event.
        def write_events(profile, thread, weight, unit)
          nodes, open, last = [0], [], nil
          list(profile["events"], "events").each do |event|
            event = object(event, "an event")
            at = (number(event["at"], "the time of an event") * unit).round
            if last.nil?
              start(profile, thread, at - (number(profile.fetch("startValue", 0), "startValue") * unit).round)
            elsif at < last then refuse("is damaged: an event is earlier than the one before")
            elsif at > last then add(thread, nodes.last, weight, amount(at - last, "the time between two events"))
            end
            last = at
            change(event, nodes, open)
          end
        end

        def change(event, nodes, open)
          case event["type"]
          when "O"
            open << event["frame"]
            nodes << below(nodes.last, event["frame"])
          when "C"
            refuse("is damaged: a frame is closed that is not the innermost one") unless open.last == event["frame"]
            open.pop
            nodes.pop
          else wrong("an event's type", "O or C", event["type"])
          end
        end

        def start(profile, thread, start_ns = 0)
          @segment.thread(thread, name(profile["name"], "a profile's name"), start_ns: [start_ns, 0].max)
        end

        def below(parent, frame)
          id, line = @frames[index(frame, @frames.size, "a frame of a stack")]
          @segment.node(parent, id, line)
        end

        def add(thread, node, weight, value)
          return @segment.site(node: node, bytes: value) if weight == :bytes

          @segment.row(thread: thread, node: node, state: UNKNOWN, captures: 0, weight => value)
        end
      end
      private_constant :Speedscope
    end
  end
end
