# frozen_string_literal: true

require "digest"
require "fileutils"
require "json"
require "pitwall/errors"
require "pitwall/history/run"

module Pitwall
  module History
    # A folder of results that their database did not take: one file each. A file goes only after the database has said
    # that it has the results. Sent twice, they are in the database once, because runs have ids of their content.
    class Spool
      SCHEMA = "pitwall/history-spool-1"
      ENDING = ".spooled.json"
      private_constant :SCHEMA, :ENDING

      # What a file holds, beside the database without its password.
      Parcel = Struct.new(:project, :runs, keyword_init: true)
      private_constant :Parcel

      #: (String) -> void
      def initialize(folder)
        @folder = folder
      end

      # @return [String]
      attr_reader :folder

      # Keeps runs. When it returns, they are on the disk.
      # @raise [Store::Unavailable] the folder can't be written
      #: (Address, String, Array[Run]) -> String
      def keep(address, project, runs)
        text = JSON.generate("schema" => SCHEMA, "to" => address.key, "project" => project,
                             "runs" => runs.map(&:to_object))
        FileUtils.mkdir_p(@folder, mode: 0o700)
        path = File.join(@folder, "#{Digest::SHA256.hexdigest(text).slice(0, 32)}#{ENDING}")
        write(path, text)
        path
      rescue SystemCallError => error
        raise Store::Unavailable, "#{@folder}: #{SystemCallError.new(error.errno).message}"
      end

      # Whether something waits for a database. A damaged file may be for it.
      #: (Address) -> bool
      def waiting?(address)
        paths.any? { |path| read(path, address) }
      rescue BadRecording
        true
      end

      # Sends what waits for a database. A file that is damaged or refused holds no other one back.
      # @return the number of runs that were sent
      # @raise [BadRecording, Store::Unavailable] the first failure; what was not sent stays
      #: (Store) -> Integer
      def send_to(store)
        failures = []
        sent = paths.sum do |path|
          # Twice unavailable: it is the database, not the file.
          break if failures.grep(Store::Unavailable).size > 1

          deliver(path, store)
        rescue BadRecording, Store::Unavailable => error
          failures << error
          0
        end
        failures.any? ? raise(failures.first) : sent
      end

      private

      # The rename comes after the content is on the disk, and the folder's entry is written before the end.
      def write(path, text)
        part = "#{path}.#{Process.pid}.part"
        File.open(part, "wx", 0o600) do |file|
          file.write(text)
          file.fsync
        end
        File.rename(part, path)
        File.open(@folder, &:fsync)
      ensure
        FileUtils.rm_f(part)
      end

      def deliver(path, store)
        parcel = read(path, store.address) or return 0
        store.add(parcel.project, parcel.runs)
        FileUtils.rm_f(path)
        parcel.runs.size
      end

      def paths = Dir.glob("*#{ENDING}", base: @folder).sort.map { |name| File.join(@folder, name) }

      # @return [Parcel, nil] nil where it is for another database, or where another sender has just sent it
      def read(path, address)
        object = JSON.parse(File.read(path, encoding: "UTF-8"))
        raise BadRecording, "#{path}: kept by a newer Pitwall" unless object["schema"] == SCHEMA

        to, project = object.fetch("to"), object.fetch("project")
        runs = object.fetch("runs").map { |run| Run.from_object(run) }
        raise TypeError unless runs.all?(&:sound?) && [to, project].all? { |text| History.text?(text) }

        Parcel.new(project: project, runs: runs) if (address.sqlite? ? File.absolute_path(to) : to) == address.key
      rescue Errno::ENOENT
        nil
      rescue SystemCallError => error
        raise BadRecording, "#{path}: #{SystemCallError.new(error.errno).message}"
      rescue JSON::ParserError, EncodingError, KeyError, ArgumentError, NoMethodError, TypeError
        raise BadRecording, "#{path}: damaged, not sent: move the file away"
      end
    end
  end
end
