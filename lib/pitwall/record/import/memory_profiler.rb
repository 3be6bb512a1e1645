# frozen_string_literal: true

require "pitwall/record/import/format"

module Pitwall
  module Record
    module Import
      # memory_profiler's results as JSON: an object whose keys are names of methods of MemoryProfiler::Results, each
      # with a list of { "data": "shop.rb:12", "count": 40 }. memory_profiler itself only prints text; programs that
      # keep its results write this.
      #
      # The lists of places, classes, files and gems count the same objects. They can't be joined, so one of them is
      # taken. memory_profiler cuts its lists: what the totals have beyond the list is one more site.
      # @api private
      class MemoryProfiler < Format
        LISTS = %w[location class file gem].freeze
        # Part of the keys' names → counter of a site.
        COUNTERS = { "allocated_objects" => :count, "allocated_memory" => :bytes,
                     "retained_objects" => :retained, "retained_memory" => :retained_bytes }.freeze
        TOTALS = { count: "total_allocated", bytes: "total_allocated_memsize", retained: "total_retained",
                   retained_bytes: "total_retained_memsize" }.freeze
        KEY = /\A(?:allocated|retained)_(?:objects|memory)_by_(?:location|class|file|gem)\z/.freeze
        PLACE = /\A(.+):(\d{1,9})\z/.freeze
        REST = "(not listed)"
        private_constant :LISTS, :COUNTERS, :TOTALS, :KEY, :PLACE, :REST

        class << self
          def title = "memory_profiler"

          def fits?(source)
            file = source.json
            file.is_a?(Hash) && file.any? { |key, list| list.is_a?(Array) && key.match?(KEY) }
          end
        end

        def write(writer)
          @file = object(@source.json, "the file")
          lists = LISTS.select { |list| COUNTERS.each_key.any? { |name| @file["#{name}_by_#{list}"].is_a?(Array) } }
          refuse("has no list of objects") if lists.empty?

          list = chosen_type(lists)
          sites = sites(list)
          @segment = segment(writer, sampled: false, notes: notes(sites))
          sites.each { |name, counters| add(list, name, counters) }
          @segment.close
        end

        private

        # Name → counters, the heaviest first.
        def sites(list)
          sites = Hash.new { |found, name| found[name] = Hash.new(0) }
          COUNTERS.each do |key, counter|
            list(@file.fetch("#{key}_by_#{list}", []), "#{key}_by_#{list}").each do |row|
              row = object(row, "a row of #{key}_by_#{list}")
              name = row["data"].nil? ? "(unknown)" : string(row["data"], "the name of a row")
              sites[name][counter] += count(row["count"], "the count of #{name}")
            end
          end
          add_rest(sites)
          sites
        end

        # Totals that are missing or lower than the sums tell of no rest.
        def add_rest(sites)
          rest = TOTALS.to_h do |counter, key|
            total = @file[key].nil? ? 0 : count(@file[key], key)
            [counter, [total - sites.each_value.sum { |counters| counters[counter] }, 0].max]
          end
          sites[REST] = rest if rest.each_value.any?(&:positive?)
        end

        def notes(sites)
          ["live objects were counted when memory_profiler stopped",
           ("memory_profiler lists the heaviest only: the others are #{REST}" if sites.key?(REST))].compact
        end

        def add(list, name, counters)
          return site(@segment.stack([[name, "", 0, 0, Frame::PITWALL]]), counters) if name == REST

          case list
          when "location" then site(place(name), counters)
          when "class" then site(0, counters, class_name: name)
          when "file" then site(@segment.stack([[File.basename(name), name, 0, 0, Frame::RUBY]]), counters)
          else site(@segment.stack([[name, "", 0, 0, Frame::RUBY]]), counters)
          end
        end

        def site(node, counters, class_name: "")
          @segment.site(node: node, class_name: class_name, **counters)
        end

        def place(name)
          path, number = PLACE.match(name)&.captures
          @segment.stack([[File.basename(name), path || name, 0, line(number.to_i), Frame::RUBY]])
        end
      end
      private_constant :MemoryProfiler
    end
  end
end
