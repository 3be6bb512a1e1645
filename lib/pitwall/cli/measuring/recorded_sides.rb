# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/cli/recording/project"
require "pitwall/cli/measuring/recorded_boots"
require "pitwall/cli/measuring/recorded_structure"
require "pitwall/cli/recording/recording_options"
require "pitwall/errors"
require "pitwall/record"
require "pitwall/show"
require "pitwall/views/hints"

module Pitwall
  module CLI
    # The part of `compare` that reads recordings: compares two recordings, and checks a prediction against them.
    module RecordedSides
      include RecordedBoots
      include RecordedStructure

      # Options of measuring, which are refused when two recordings are compared.
      MEASURING = %i[fail_if record max_blocks control check in_turns why
                     instructions syscalls retained budget warmup].freeze
      private_constant :MEASURING

      private

      def define_recorded_options(parser)
        parser.separator("Of two recordings, and of predictions (pitwall report --predict)")
        parser.on("--weight WEIGHT", %i[wall cpu], "wall or cpu (wall)") { |weight| @options[:weight] = weight }
        parser.on("--label NAME=VALUE", "only what ran under a label, e.g. route=orders#show; repeatable") do |text|
          RecordingOptions.label(@options, text)
        end
        RecordingOptions.define_sample_filters(parser, @options)
        RecordingOptions.define_native(parser, @options)
        define_structure_options(parser)
        parser.on("--before FILE", "another recording of A.pit's side, for noise between runs; repeatable") do |file|
          (@options[:before] ||= []) << file
        end
        parser.on("--after FILE", "another recording of B.pit's side; repeatable") do |file|
          (@options[:after] ||= []) << file
        end
        parser.on("--salvage", "read what is left of damaged recordings") { @options[:salvage] = true }
        NativeNames.define_options(parser, @options)
        parser.on("--predicted PLACE", "did removing PATH:LINE or a method save what was predicted?") do |place|
          @options[:predicted] = place
        end
        recording = "another recording to predict from, beside A.pit, e.g. one of allocations; repeatable"
        parser.on("--recording FILE", recording) do |file|
          (@options[:recording] ||= []) << file
        end
      end

      # Checks that the files are two recordings and nothing else, or no recordings.
      # @raise [UsageError]
      def check_recordings(files)
        recording = files.find { |file| file.end_with?(".pit") }
        return if recording.nil? || recordings?(files)
        if files.one? && !sides.any? && @command.nil?
          raise UsageError, "#{recording}: one recording has nothing to be compared with: " \
                            "pitwall compare #{recording} OTHER.pit"
        end

        if files.size > 2 && files.all? { |file| file.end_with?(".pit") }
          raise UsageError, "#{files[2]}: two recordings are compared; name further runs of either side: " \
                            "--before FILE, --after FILE"
        end

        raise UsageError, "#{recording}: a recording is compared with another one, and with nothing else: " \
                          "pitwall compare A.pit B.pit"
      end

      def recordings?(files) = files.size == 2 && !sides.any? && files.all? { |file| file.end_with?(".pit") }

      def check_recorded_options(two_recordings)
        if @options[:recording] && @options[:predicted].nil?
          raise UsageError, "--recording: is for --predicted, which predicts from it; add --predicted PLACE"
        end

        return if two_recordings

        filter = %i[time focus hide blackbox native view limit].find { |name| @options[name] }
        if filter
          typed = filter == :native ? "--native" : "--#{filter} …"
          raise UsageError, "--#{filter}: is for two recordings: pitwall compare A.pit B.pit #{typed}"
        end

        if @options[:labels]
          raise UsageError, "--label: selects samples of two recordings: pitwall compare A.pit B.pit --label NAME=VALUE"
        end

        if @options[:salvage] && @options[:recording].nil?
          raise UsageError, "--salvage: is for recordings, and none is compared: leave it out"
        end

        if @options[:symbols] && @options[:recording].nil?
          raise UsageError, "--symbols: is for recordings, and none is compared: leave it out"
        end

        option = %i[before after].find { |name| @options[name] }
        if option
          raise UsageError, "--#{option}: names another run beside two recordings: " \
                            "pitwall compare A.pit B.pit --#{option} FILE"
        end

        return if @options[:predicted].nil?
        if @command.nil?
          raise UsageError, "--predicted: works with a whole command, as recordings are of one: " \
                            "compare SIDE… --predicted PLACE --recording X.pit -- CMD"
        end

        if @options[:recording].nil?
          raise UsageError, "--predicted: name recordings of the base's command to predict from: --recording X.pit"
        end
      end

      # Compares two profiles and shows which methods' shares differ. One run of each gives no verdict about the total
      # time. A prediction (--predicted) does get a verdict.
      # @return [Integer] the exit status
      def compare_recordings(files)
        check_options_of_recordings

        check_output(files)
        names = files.zip(@options.values_at(:before, :after)).map { |file, more| [file, *more] }
        recordings = names.map { |side| side.map { |file| read_recording(file) } }
        refuse_traced_with_sampled(names.flatten, recordings.flatten)
        check_labels(names.flatten, recordings.flatten)
        segments = filtered(names, recordings)
        return compare_boots(files, segments) if boots?(names, segments)
        return compare_objects(files, names, segments) if objects?(names, segments)
        return compare_structure(files, segments) if structure?

        change = profile_change(segments)
        check = prediction_check(names, recordings)
        requests = Analyse::RequestChange.new(segments, base: files[0], side: files[1], labels: @options[:labels])
        @warnings = recording_warnings(files, segments)
        @structure = structure(files, segments) if @options[:format] == "html"
        publish(recordings_report(files, change, check, requests))
        return check_status(check) if check
        return requests_status(requests) if requests.any?

        change.reason ? Status::CANNOT_MEASURE : Status::OK
      end

      def check_options_of_recordings
        option = MEASURING.find { |name| @options.key?(name) }
        if option
          raise UsageError, "--#{option.to_s.tr("_", "-").sub("max-blocks", "pairs")}: " \
                            "is for sides that are measured; two recordings are compared as they are"
        end

        check_structure_options
        return unless @options[:predicted]

        part = "--label" if @options[:labels]
        part ||= %i[time focus hide only blackbox native].find { |name| @options[name] }&.then { |name| "--#{name}" }
        raise UsageError, "--predicted: works with a whole program: leave out #{part}" if part
      end

      # By side and recording, the segments with what the filters leave.
      # @raise [UsageError]
      def filtered(names, recordings)
        all = recordings.map { |side| side.map(&:segments) }
        return all unless filters.any? || only_mine? || boxes?

        known = filters.known(all.flatten)
        RecordingOptions.telling_of_native(@folded) do
          known.check_names(all.flatten)
          known.box(all.flatten) if boxes?
        end
        names.zip(all).map do |files, side|
          files.zip(side).map { |file, segments| filtered_recording(file, segments, known) }
        end
      end

      def filtered_recording(file, segments, known)
        kept = known.call(segments)
        known.check_left(segments, kept, selection: Analyse::Selection.new(labels: @options[:labels]))
        kept = Analyse::OnlyMine.new(Project.origin).call(kept) if only_mine?
        boxes? ? known.box(kept).call(kept) : kept
      rescue UsageError => error
        raise UsageError, "#{file}: #{error.message}"
      end

      # Call paths are folded where they are compared: there garbage collection belongs to its callers first.
      def boxes? = filters.blackbox.any? && !structure?

      # --only names cases where sides are measured.
      def filter_options = @options.merge(only: @options[:only_as_typed])

      def filters = @filters ||= Views::Filters.of(filter_options, Project.origin)

      def only_mine? = Views::Filters.only_mine?(filter_options)

      # What is compared, where that is not everything.
      def filter_words
        [*filters.words.flatten, *("only app" if only_mine?),
         *("folded below #{@options[:blackbox].join(", ")}" if @options[:blackbox])].join(", ")
      end

      def filters_json
        boxes = @options.fetch(:blackbox, []).flat_map { |name| name.respond_to?(:names) ? name.names : name }
        { **filters.to_h, **(only_mine? ? { "only" => "app" } : {}), **(boxes.any? ? { "blackbox" => boxes } : {}) }
      end

      def profile_change(segments)
        a, b = sides_of(segments)
        weight = @options[:weight] || (counts_alone?(segments.flatten) ? :captures : :wall)
        Analyse::ProfileChange.compare(a: a, b: b, weight: weight, labels: @options[:labels])
      end

      # Whether imported files have counts and no times.
      def counts_alone?(segments)
        segments.all? { |segment| segment.header.imported } &&
          segments.all? { |segment| segment.tallies.none? { |tally| timed?(tally) } }
      end

      def timed?(tally) = tally.enum_for(:each).any? { |_node, wall, cpu, _captures| wall.positive? || cpu.positive? }

      def sides_of(segments)
        segments.zip(Analyse::ProfileChange::Pair.bases(segments)).map do |side, base|
          Analyse::ProfileChange::Side.new(recordings: side, base: base)
        end
      end

      # Warnings about differences between the recordings, and about a server's recording without marked requests.
      def recording_warnings(files, segments)
        warnings = Analyse::ProfileChange::Pair.warnings(segments, files)
        unmarked = files.zip(segments).find { |_, runs| Analyse::Server.unmarked?(runs.flatten(1)) }
        unmarked ? warnings + ["#{unmarked.first}: #{Analyse::Summary::UNMARKED}"] : warnings
      end

      # The exit status: 1 when any route is slower. 3 only when all routes are undecided, because some of many
      # routes always are.
      def requests_status(requests)
        verdicts = requests.effects.map { |effect| effect.below_margin ? :same : effect.verdict }
        return Status::WORSE if (verdicts & %i[slower more]).any?

        verdicts.all?(:undecided) ? Status::UNDECIDED : Status::OK
      end

      # Whether all recordings hold only allocated objects.
      # @raise [UsageError] some recordings hold objects and others times, which can't be compared
      def objects?(names, segments)
        followed = segments.flatten(1).map { |recording| only_objects?(recording) }
        return false if followed.none? || @options[:predicted]

        other = names.flatten[followed.index(false)] unless followed.all?
        if other
          raise UsageError, "#{names.flatten[followed.index(true)]} holds objects, and #{other} times: " \
                            "they can't be compared; record both alike"
        end

        if @options.key?(:weight)
          raise UsageError, "--weight #{@options[:weight]}: is for times, and the recordings hold objects: leave it out"
        end

        refuse_structure_of_objects(names.flatten.first)
        true
      end

      def only_objects?(segments)
        segments.any?(&:allocation_totals) && segments.none? { |segment| segment.sampled? || segment.traced? }
      end

      # Compares two recordings of allocations: objects, bytes, and the sites that changed.
      # @return [Integer] the exit status
      def compare_objects(files, names, segments)
        bursts = segments.flatten(1).map { |recording| recording.any? { |segment| segment.allocation_totals&.bursts? } }
        if bursts.uniq.size > 1
          raise UsageError, "#{names.flatten[bursts.index(true)]} looked at objects in bursts, " \
                            "and #{names.flatten[bursts.index(false)]} at all of them: record both alike"
        end

        change = Analyse::AllocationChange.new(segments, bases: Analyse::ProfileChange::Pair.bases(segments))
        publish(objects_report(change, base: files[0], side: files[1], growth: growth(segments),
                                       warnings: Analyse::ProfileChange::Pair.warnings(segments, files)))
        Status::OK
      end

      # The growth of objects in each side's recordings; nil unless all recordings have data about growth.
      def growth(segments)
        found = segments.map { |side| side.map { |recording| Analyse::ObjectGrowth.new(recording) } }
        found if found.flatten.all?(&:any?)
      end

      def objects_report(change, base:, side:, warnings:, growth:)
        facts = { base: base, side: side, hints: Views::Hints, warnings: warnings, growth: growth,
                  location: Show::Location.new(Dir.pwd) }
        return Show::MeasuredPage.of_objects(change, **facts) if @options[:format] == "html"

        view = Show::AllocationChangeView.new(change, **facts)
        case @options[:format]
        when "json"
          JSON.generate({ "schema" => "pitwall/compare-1", "results" => [], "warnings" => warnings,
                          "objects" => view.json })
        when "markdown" then view.markdown
        else view.lines(**rendering.slice(:width, :palette)).join("\n")
        end
      end

      def read_recording(file)
        raise UsageError, "#{file}: no such file" unless File.file?(file)

        read = Pitwall::Record.read(file, salvage: @options.fetch(:salvage, false))
        segments, notes = NativeNames.call(read.segments, @options, shown: native?)
        @folded ||= !native? && Analyse::NativeFrames.any?(segments)
        segments = Analyse::NativeFrames.fold(segments) unless native?
        Pitwall::Record::Recording.new(read.path, read.bytes, segments, read.warnings + notes)
      end

      def native? = @options[:native] || @options[:only_as_typed] == "native"

      # Tracing slows calls down, so a trace's shares of time can't be compared with a sampled recording's.
      # @raise [UsageError]
      def refuse_traced_with_sampled(files, recordings)
        traced = recordings.map do |recording|
          recording.segments.any?(&:traced?) && recording.segments.none?(&:sampled?)
        end
        return if traced.uniq.size < 2

        trace, other = [true, false].map { |kind| files[traced.index(kind)] }
        raise UsageError, "#{trace} is traced and #{other} is not: a trace slows calls, " \
                          "so shares of time differ for that; record both alike"
      end

      # Every recording must have the label. Without the label a side would be empty, and every method a change.
      # @raise [UsageError]
      def check_labels(files, recordings)
        selection = Analyse::Selection.new(labels: @options[:labels])
        files.zip(recordings) do |file, recording|
          selection.check(recording.segments)
        rescue UsageError => error
          raise UsageError, "#{file}: #{error.message}"
        end
      end

      # The check of --predicted; nil without that option.
      def prediction_check(names, recordings)
        place = @options[:predicted] or return
        refuse_different_tracking(names.flatten, recordings.flatten)
        before, after = recordings.map { |side| side.map(&:segments) }
        Analyse::PredictionCheck.of_recordings(place, before: before, after: after, more: predicted_from,
                                                      weight: @options.fetch(:weight, :wall))
      end

      # Tracking objects takes time itself. The difference of two ways of tracking would count as saving.
      # @raise [UsageError]
      def refuse_different_tracking(files, recordings)
        followed = recordings.map do |recording|
          recording.segments.map(&:allocation_totals).compact.map { |totals| totals.bursts? ? :bursts : :all }.first
        end
        return if followed.uniq.size < 2

        one, other = followed.uniq.first(2).map { |kind| files[followed.index(kind)] }
        raise UsageError, "--predicted: objects were followed otherwise in #{one} than in #{other}, " \
                          "which takes time: record both alike and name places of allocation by --recording"
      end

      # The segments of each file of --recording.
      def predicted_from = @options.fetch(:recording, []).map { |file| read_recording(file).segments }

      # The exit status: 3 undecided, 1 when the program became slower, else 0.
      def check_status(check)
        return Status::UNDECIDED if check.verdict == :undecided

        check.saving.high.negative? ? Status::WORSE : Status::OK
      end

      def recordings_report(files, change, check, requests)
        requests = Show::RequestChangeView.new(requests)
        case @options[:format]
        when "json" then recordings_json(files, change, check, requests)
        when "html"
          Show::MeasuredPage.of_change(change, base: files[0], side: files[1], requests: requests.parts,
                                               hints: Views::Hints, structure: @structure)
        else recordings_text(files, change, check, requests)
        end
      end

      def recordings_text(files, change, check, requests)
        options = rendering.slice(:width, :palette)
        options[:palette] = Show::Plain if @options[:format] == "markdown"
        sides = { base: files[0], side: files[1] }
        lines = filter_words.empty? ? [] : Show::Text.wrap("compared: #{filter_words}", options[:width]) + [""]
        lines += check ? [*Show::PredictionCheckView.new(check, **sides).lines(**options, hints: Views::Hints), ""] : []
        lines += requests.lines(**options, hints: Views::Hints)
        why = Show::WhyText.new(**options, location: Show::Location.new(Dir.pwd), warnings: @warnings,
                                           hints: Views::Hints)
        lines += why.lines(change, **sides)
        (@options[:format] == "markdown" ? ["```", *lines, "```"] : lines).join("\n")
      end

      def recordings_json(files, change, check, requests)
        sides = { base: files[0], side: files[1] }
        object = { "schema" => "pitwall/compare-1", "results" => Show::JsonValues.clean(requests.json),
                   "warnings" => @warnings, "why" => [Show::WhyJson.body(change, **sides)] }
        object["filters"] = filters_json unless filter_words.empty?
        object["predictions"] = [Show::PredictionCheckView.new(check, **sides).json] if check
        JSON.generate(object)
      end

      # Checks of a prediction against the measured effects: name of the side → check.
      # @param before [Array<Array<Record::Segment>>] the segments that {#predicted_from} returns
      def measured_checks(report, before)
        weight = @options.fetch(:weight, :wall)
        report.effects.select { |effect| effect.metric == weight.to_s }.to_h do |effect|
          check = Analyse::PredictionCheck.of_effect(@options[:predicted], effect, before: before, weight: weight)
          [effect.side, check]
        end
      end
    end
  end
end
